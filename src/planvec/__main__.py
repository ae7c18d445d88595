from planvec.cli.main import main

main()
